/* Marks ranges in both forms that DeepSpeed has, as PyTorch and the nvtx package do it, and makes NCCL calls inside.
 * Prints what each NVTX function returned, levels as they are, handles as there or not. */
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static ncclComm_t world;
static cudaStream_t stream;
static float *memory;

static void call(size_t count) {
  if (ncclReduceScatter(memory, memory, count, ncclFloat, ncclSum, world, stream)) exit(2);
}

static nvtxEventAttributes_t attributes(nvtxMessageType_t type) {
  nvtxEventAttributes_t made;
  memset(&made, 0, sizeof made);
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.messageType = type;
  return made;
}

static void plain(void) {
  printf("push %d\n", nvtxRangePushA("batch 3"));
  printf("push %d\n", nvtxRangePushA("DeepSpeedEngine.forward"));
  printf("push %d\n", nvtxRangePushA("PartitionedParameterCoordinator.fetch_sub_module"));
  call(10);
  printf("pop %d\n", nvtxRangePop());
  call(11);
  printf("pop %d\n", nvtxRangePop());
  nvtxEventAttributes_t wide = attributes(NVTX_MESSAGE_TYPE_UNICODE);
  wide.message.unicode = L"DeepSpeedEngine.backward";
  printf("push %d\n", nvtxRangePushEx(&wide));
  call(12);
  printf("pop %d\n", nvtxRangePop());
  nvtxMarkA("between");
  printf("push %d\n", nvtxRangePushW(L"DeepSpeedZeroOptimizer_Stage3.step"));
  call(13);
  printf("pop %d\n", nvtxRangePop());
  call(14);
  printf("pop %d\n", nvtxRangePop());
  printf("pop %d\n", nvtxRangePop());
}

static void push_registered(nvtxDomainHandle_t domain, nvtxStringHandle_t text) {
  nvtxEventAttributes_t registered = attributes(NVTX_MESSAGE_TYPE_REGISTERED);
  registered.message.registered = text;
  printf("domain push %d\n", nvtxDomainRangePushEx(domain, &registered));
}

static void in_domain(void) {
  nvtxDomainHandle_t deepspeed = nvtxDomainCreateA("DeepSpeed"), other = nvtxDomainCreateA("other");
  nvtxStringHandle_t forward = nvtxDomainRegisterStringA(deepspeed, "DeepSpeedEngine.forward");
  nvtxStringHandle_t gather = nvtxDomainRegisterStringA(deepspeed, "allgather_fn");
  nvtxStringHandle_t backward = nvtxDomainRegisterStringW(deepspeed, L"DeepSpeedEngine.backward");
  nvtxStringHandle_t others = nvtxDomainRegisterStringA(other, "DeepSpeedEngine.forward");
  push_registered(other, others);
  call(20);
  push_registered(deepspeed, forward);
  push_registered(deepspeed, gather);
  call(21);
  printf("domain pop %d\n", nvtxDomainRangePop(deepspeed));
  printf("domain pop %d\n", nvtxDomainRangePop(other));
  call(22);
  printf("domain pop %d\n", nvtxDomainRangePop(deepspeed));
  call(23);
  push_registered(deepspeed, backward);
  call(24);
  printf("domain pop %d\n", nvtxDomainRangePop(deepspeed));
  nvtxEventAttributes_t plain = attributes(NVTX_MESSAGE_TYPE_ASCII);
  plain.message.ascii = "DeepSpeedZeroOptimizer_Stage3.step";
  printf("domain push %d\n", nvtxDomainRangePushEx(deepspeed, &plain));
  call(25);
  printf("domain pop %d\n", nvtxDomainRangePop(deepspeed));
  nvtxDomainDestroy(deepspeed);
}

int main(void) {
  ncclUniqueId id;
  if (cudaMalloc((void **)&memory, 4096) || cudaStreamCreate(&stream) || ncclGetUniqueId(&id)) return 2;
  if (ncclCommInitRank(&world, 1, id, 0)) return 2;
  plain();
  in_domain();
  return cudaStreamSynchronize(stream) || ncclCommDestroy(world);
}
