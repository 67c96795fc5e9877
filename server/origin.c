/* SPDX-License-Identifier: Apache-2.0 */
/* See origin.h. sshd limits those who have not authenticated by number (MaxStartups) and by origin
 * (PerSourceMaxStartups), and refuses newcomers past either. Here the newcomer is taken in and an older one
 * goes: an honest client is through in a few round trips, so who has been silent longest is the likeliest to
 * be none. */
#include "server/origin.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct origin origin_of(int fd)
{
	union { struct sockaddr any; struct sockaddr_in four; struct sockaddr_in6 six; } a;
	socklen_t n = sizeof a, size = sizeof(struct ucred);
	struct origin o = {{0}};
	struct ucred c;

	if (getpeername(fd, &a.any, &n))
		return o;
	o.bytes[0] = (uint8_t)a.any.sa_family;
	if (a.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.six.sin6_addr)) {
		o.bytes[0] = AF_INET;
		memcpy(o.bytes + 8, a.six.sin6_addr.s6_addr + 12, 4);
	} else if (a.any.sa_family == AF_INET6) {
		memcpy(o.bytes + 8, a.six.sin6_addr.s6_addr, 8);
	} else if (a.any.sa_family == AF_INET) {
		memcpy(o.bytes + 8, &a.four.sin_addr, 4);
	} else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size)) {
		memcpy(o.bytes + 8, &c.uid, sizeof c.uid);
	}
	return o;
}

int origin_gives_way(const struct claim *claim, int n)
{
	int best = 0, most = 0;

	for (int i = 0; i < n; i++) {
		int same = 0;

		for (int k = 0; k < n; k++)
			same += !memcmp(&claim[i].from, &claim[k].from, sizeof claim->from);
		if (same > most || (same == most && claim[i].age < claim[best].age)) {
			best = i;
			most = same;
		}
	}
	return best;
}
