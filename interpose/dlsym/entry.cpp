// dlsym() itself, in assembly: it asks route() where to go on and jumps there with handle and name as they came and the
// caller's return address in place, because the loader tells by that address which scope RTLD_NEXT and RTLD_DEFAULT mean.
// The jump's target gets the return address as a third argument; the loader's dlsym() takes two.
#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call dshang_dlsym_route
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  movq (%rsp), %rdx
  jmp *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  stp x0, x1, [sp, #16]
  bl dshang_dlsym_route
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_adjust_cfa_offset -32
  mov x2, x30
  br x16
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#else
#error "dshang runs on x86-64 and aarch64"
#endif
