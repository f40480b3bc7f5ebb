// Says who it runs as and whether dshang is in it, and makes a file descriptor count and a thread count to compare.
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int entries(const char *folder) {
  int found = 0;
  DIR *list = opendir(folder);
  while (list && readdir(list)) ++found;
  if (list) closedir(list);
  return found;
}

int main(void) {
  char line[4096];
  int loaded = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) loaded |= strstr(line, "libdshang") != NULL;
  if (maps) fclose(maps);
  printf("%d %d %d %d %d\n", getuid() != 0, geteuid() == 0, loaded, entries("/proc/self/fd"), entries("/proc/self/task"));
  return 0;
}
