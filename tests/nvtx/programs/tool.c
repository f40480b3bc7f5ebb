/* Another tool for NVTX: counts levels and writes what it is told to TOOL_LOG.  TOOL_FAILS: it puts its functions there
 * and then says that it failed. */
#include <nvtx3/nvToolsExt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static int level, domain_level;
static char names[64][64];
static int known;

static void tell(const char *format, ...) {
  FILE *log = fopen(getenv("TOOL_LOG"), "a");
  va_list values;
  if (!log) abort();
  va_start(values, format);
  vfprintf(log, format, values);
  va_end(values);
  fclose(log);
}

static void *handle_of(const char *name) {
  snprintf(names[known], sizeof names[known], "%s", name);
  return names[known++];
}

static const char *message(const nvtxEventAttributes_t *attributes) {
  static char narrow[64];
  if (attributes->messageType == NVTX_MESSAGE_TYPE_ASCII) return attributes->message.ascii;
  if (attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED) return (const char *)attributes->message.registered;
  snprintf(narrow, sizeof narrow, "%ls", attributes->message.unicode);
  return narrow;
}

static void NVTX_API mark(const char *name) { tell("mark %s\n", name); }
static int NVTX_API push_ex(const nvtxEventAttributes_t *attributes) {
  tell("push %s\n", message(attributes));
  return level++;
}
static int NVTX_API push(const char *name) {
  tell("push %s\n", name);
  return level++;
}
static int NVTX_API push_wide(const wchar_t *name) {
  tell("push %ls\n", name);
  return level++;
}
static int NVTX_API pop(void) {
  tell("pop\n");
  return level ? --level : NVTX_NO_PUSH_POP_TRACKING;
}
static nvtxDomainHandle_t NVTX_API create(const char *name) {
  tell("create %s\n", name);
  return handle_of(name);
}
static void NVTX_API destroy(nvtxDomainHandle_t domain) { tell("destroy %s\n", (const char *)domain); }
static nvtxStringHandle_t NVTX_API reg(nvtxDomainHandle_t domain, const char *name) {
  tell("register %s %s\n", (const char *)domain, name);
  return handle_of(name);
}
static nvtxStringHandle_t NVTX_API reg_wide(nvtxDomainHandle_t domain, const wchar_t *name) {
  char narrow[64];
  snprintf(narrow, sizeof narrow, "%ls", name);
  return reg(domain, narrow);
}
static int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
  tell("push %s %s\n", (const char *)domain, message(attributes));
  return domain_level++;
}
static int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
  tell("pop %s\n", (const char *)domain);
  return --domain_level;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable core, core2;
  unsigned size;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size)) return 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size)) return 0;
  tell("initialise\n");
  *core[NVTX_CBID_CORE_MarkA] = (NvtxFunctionPointer)mark;
  *core[NVTX_CBID_CORE_RangePushEx] = (NvtxFunctionPointer)push_ex;
  *core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *core[NVTX_CBID_CORE_RangePushW] = (NvtxFunctionPointer)push_wide;
  *core[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  *core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
  *core2[NVTX_CBID_CORE2_DomainDestroy] = (NvtxFunctionPointer)destroy;
  *core2[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)reg;
  *core2[NVTX_CBID_CORE2_DomainRegisterStringW] = (NvtxFunctionPointer)reg_wide;
  *core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)domain_push;
  *core2[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)domain_pop;
  return getenv("TOOL_FAILS") == NULL;
}
