/* Lookups of every kind, for a machine where little else runs: prints three times 1 where each finds what it should. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  void *self = dlopen(NULL, RTLD_NOW);
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "getpid");
  int missing = dlsym(self, "ncclNoSuchThing") == NULL && dlerror() != NULL;
  printf("%d %d %d\n", dlsym(RTLD_DEFAULT, "getpid") == dlsym(self, "getpid"), next && next() == getpid(), missing);
  return 0;
}
