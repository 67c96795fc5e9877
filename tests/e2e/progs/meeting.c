/* SPDX-License-Identifier: Apache-2.0 */
/* The program's part of wire/ctl.h's CTL_CHANNEL, step by step, so that others can come between: asks for the
 * memory, says "session N", waits for standard input, connects to sessions/N.channel and says "mine" when it
 * got the memory. With the argument "others" a child of it tries first and says "not the child's" when it
 * gets nothing. One thread each. */
#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"
#include "wire/ctl.h"
#include "wire/ring.h"

/* How many descriptors come with the byte. */
static int descriptors(const char *mount, unsigned session)
{
	union { struct cmsghdr align; char bytes[CMSG_SPACE(4 * sizeof(int))]; } control;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct iovec v = {&(char){0}, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			.msg_controllen = sizeof control};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), n = 0;

	REQUIRE(s >= 0);
	REQUIRE((size_t)snprintf(a.sun_path, sizeof a.sun_path, CTL_CHANNEL_NAME, mount,
			session) < sizeof a.sun_path);
	if (connect(s, (struct sockaddr *)&a, sizeof a)) {
		perror(a.sun_path);
		exit(1);
	}
	if (recvmsg(s, &m, 0) == 1)
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
			n += (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	close(s);
	return n;
}

int main(int argc, char **argv)
{
	const char *mount = getenv("SCUDAFS_MOUNT");
	struct ctl_channel c = {.version = RING_VERSION};
	char path[PATH_MAX];
	int status, fd;

	REQUIRE(mount != NULL);
	snprintf(path, sizeof path, "%s/ctl", mount);
	fd = open(path, O_RDWR | O_CLOEXEC);
	REQUIRE(fd >= 0);
	if (ioctl(fd, CTL_CHANNEL, &c)) {
		perror("CTL_CHANNEL");
		return 1;
	}
	printf("session %u\n", c.session);
	fflush(stdout);
	await();
	if (argc > 1 && !strcmp(argv[1], "others")) {
		pid_t pid = fork();

		if (!pid)
			_exit(descriptors(mount, c.session));
		REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		say(WEXITSTATUS(status) ? "the child has it" : "not the child's");
	}
	say(descriptors(mount, c.session) ? "mine" : "nothing came");
	return 0;
}
