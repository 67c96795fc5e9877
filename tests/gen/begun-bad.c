/* SPDX-License-Identifier: Apache-2.0 */
/* For begun.sh, which reads it: each line with a comment makes a call inside a begun one, and no other does.
 * */

static CUresult ask(struct function *f)
{
	struct call c;
	CUresult r = call_begin(&c, CALL_a);

	return r ? r : call_end(&c, call_wait(&c));
}

static struct function *find(void *h)
{
	ask(h);
	return h;
}

static CUresult begin(struct call *c, void *h)
{
	find(h);
	CUresult r = call_begin(c, CALL_b);

	find(h); /* bad */
	return r;
}

static void put_two(struct call *c, void *h)
{
	put_u64(&c->out, 1);
	put_u64(&c->out, *(uint64_t *)find(h)); /* bad */
}

static CUresult finish(struct call *c)
{
	return call_end(c, call_wait(c));
}

CUresult cuOne(void *h)
{
	struct call c;
	CUresult r = find(h) ? begin(&c, h) : 1;

	if (r)
		return r;
	put_two(&c, h); /* bad */
	r = call_wait(&c);
	ask(h); /* bad */
	*h = get_u64(&c.in);
	r = call_end(&c, r);
	return r ? r : ask(h);
}

CUresult cuTwo(void *h)
{
	struct call c;
	CUresult r = begin(&c, h);

	return r ? r : finish(&c) || ask(h);
}
