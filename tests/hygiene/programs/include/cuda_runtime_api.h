/* What examples/annotated.c needs of CUDA's header, so that its test runs where there is no toolkit. */
#pragma once
#include <stddef.h>

typedef struct CUstream_st *cudaStream_t;
int cudaSetDevice(int device);
int cudaMalloc(void **memory, size_t bytes);
int cudaStreamCreate(cudaStream_t *stream);
int cudaStreamSynchronize(cudaStream_t stream);
