/* A training loop in C that tells dshang its steps, phases and modules (dshang.h), and runs without dshang too.
 *
 *     cc -I"$(dshang path include)" -o annotated examples/annotated.c -lnccl -lcudart
 *     ID_FILE=/tmp/id RANK=0 WORLD_SIZE=2 ./annotated &  ID_FILE=/tmp/id RANK=1 WORLD_SIZE=2 ./annotated
 *
 * The functions are declared weak: where libdshang.so is not preloaded they are null.  --mistake: in step 3 the last
 * rank leaves a layer out. */
#define DSHANG_WEAK
#include <cuda_runtime_api.h>
#include <dshang.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 3, STEPS = 5, WIDTH = 1000 };

static void step(int64_t n) {
  if (dshang_step) dshang_step(n);
}
static void begin(const char *phase) {
  if (dshang_phase_push) dshang_phase_push(phase);
}
static void end(void) {
  if (dshang_phase_pop) dshang_phase_pop();
}
static void enter(const char *module) {
  if (dshang_module_push) dshang_module_push(module);
}
static void leave(void) {
  if (dshang_module_pop) dshang_module_pop();
}

static void check(int failed, const char *what) {
  if (!failed) return;
  fprintf(stderr, "%s failed with %d\n", what, failed);
  exit(1);
}

static int number(const char *name) {
  const char *text = getenv(name);
  return text ? atoi(text) : 0;
}

/* Rank 0 leaves NCCL's id in a file; the others wait for it. */
static ncclUniqueId shared_id(int rank) {
  const char *path = getenv("ID_FILE");
  ncclUniqueId id;
  char part[4096];
  if (!path) check(1, "reading ID_FILE");
  if (rank == 0) {
    snprintf(part, sizeof part, "%s.part", path);
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    FILE *file = fopen(part, "wb");
    check(!file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) != 0, "writing the id");
    check(rename(part, path) != 0, "naming the id's file");
    return id;
  }
  FILE *file;
  while (!(file = fopen(path, "rb"))) usleep(10000);
  check(fread(&id, sizeof id, 1, file) != 1, "reading the id");
  fclose(file);
  return id;
}

int main(int argc, char **argv) {
  int rank = number("RANK"), ranks = number("WORLD_SIZE"), mistake = argc > 1 && strcmp(argv[1], "--mistake") == 0;
  ncclComm_t world;
  cudaStream_t stream;
  float *weights;
  check(cudaSetDevice(number("LOCAL_RANK")), "cudaSetDevice");
  check(cudaMalloc((void **)&weights, (size_t)ranks * WIDTH * sizeof *weights), "cudaMalloc");
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(ncclCommInitRank(&world, ranks, shared_id(rank), rank), "ncclCommInitRank");
  if (dshang_note) dshang_note("dataset_length", "4096");

  static const char *const names[LAYERS] = {"layers.0", "layers.1", "layers.2"};
  for (int64_t n = 0; n < STEPS; ++n) {
    step(n);
    begin("forward");
    for (int layer = 0; layer < LAYERS; ++layer) {
      if (mistake && n == 3 && layer == 1 && rank == ranks - 1) continue;
      enter(names[layer]);
      check(ncclAllGather(weights, weights, WIDTH, ncclFloat, world, stream), "ncclAllGather");
      leave();
    }
    end();
    begin("backward");
    check(ncclReduceScatter(weights, weights, WIDTH, ncclFloat, ncclSum, world, stream), "ncclReduceScatter");
    end();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  check(ncclCommDestroy(world), "ncclCommDestroy");
  printf("rank %d: %d steps, %s dshang\n", rank, STEPS, dshang_step ? "with" : "without");
  return 0;
}
