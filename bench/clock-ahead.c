// The clock of a program, an hour ahead while the file named by CLOCK_AHEAD_FILE exists. Its timers,
// which follow the monotonic clock, are not affected.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long secondsAhead(void) {
  const char *file = getenv("CLOCK_AHEAD_FILE");
  return file && syscall(SYS_faccessat, -100, file, 0) == 0 ? 3600 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += secondsAhead();
  return result;
}

int gettimeofday(struct timeval *now, void *zone) {
  int result = syscall(SYS_gettimeofday, now, zone);
  now->tv_sec += secondsAhead();
  return result;
}
