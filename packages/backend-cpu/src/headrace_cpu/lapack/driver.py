"""The kernel that makes the calls of a table, on the threads that all kernels share."""

from __future__ import annotations

from headrace_cpu.lapack.table import ARGUMENTS, BORDER, END, HEAD, WORDS
from headrace_cpu.native.source import KernelSource

_NAME = "make_calls"


def source() -> KernelSource:
    """Return the kernel.

    The first word of its block is the address of a table's words; behind it are the bases, of which
    the first is 0.
    """
    return KernelSource(_NAME, _text(), language="llvm")


def _text() -> str:
    """Return the kernel in LLVM's assembly.

    A call that is not repeated is made by one thread, which one its third word says; repetitions
    are shared out in runs. Functions that take fewer arguments do not look at the others.
    """
    lines: list[str] = []
    for i in range(ARGUMENTS):
        first = HEAD + 4 * i
        for name, place in (("base", 0), ("offset", 1), ("step", 2), ("own", 3)):
            lines.append(f"%{name}{i}.p = getelementptr i64, ptr %entry_, i64 {first + place}")
            lines.append(f"%{name}{i} = load i64, ptr %{name}{i}.p")
        lines += [
            f"%from{i}.p = getelementptr i64, ptr %bases, i64 %base{i}",
            f"%from{i} = load i64, ptr %from{i}.p",
            f"%mine{i} = mul i64 %own{i}, %me",
            f"%a{i} = add i64 %from{i}, %offset{i}",
            f"%start{i} = add i64 %a{i}, %mine{i}",
        ]
    before = "\n".join(f"  {line}" for line in lines)
    lines = []
    for i in range(ARGUMENTS):
        lines += [
            f"%moved{i} = mul i64 %turn, %step{i}",
            f"%sum{i} = add i64 %start{i}, %moved{i}",
            f"%p{i} = inttoptr i64 %sum{i} to ptr",
        ]
    inside = "\n".join(f"  {line}" for line in lines)
    given = ", ".join(f"ptr %p{i}" for i in range(ARGUMENTS))
    return f"""\
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare void @GOMP_barrier()

define void @{_NAME}(i64 %block) {{
entry:
  %words = inttoptr i64 %block to ptr
  %table = load ptr, ptr %words
  %bases = getelementptr i64, ptr %words, i64 1
  %me32 = call i32 @omp_get_thread_num()
  %me = sext i32 %me32 to i64
  %team32 = call i32 @omp_get_num_threads()
  %team = sext i32 %team32 to i64
  %alone = icmp eq i64 %team, 1
  br label %head
head:
  %number = phi i64 [ 0, %entry ], [ %following, %next ]
  %word = mul i64 %number, {WORDS}
  %entry_ = getelementptr i64, ptr %table, i64 %word
  %function = load i64, ptr %entry_
  switch i64 %function, label %call [ i64 {END}, label %done
                                      i64 {BORDER}, label %border ]
border:
  br i1 %alone, label %next, label %wait
wait:
  call void @GOMP_barrier()
  br label %next
call:
  %times.p = getelementptr i64, ptr %entry_, i64 1
  %times = load i64, ptr %times.p
  %owner.p = getelementptr i64, ptr %entry_, i64 2
  %owner = load i64, ptr %owner.p
  %whose = urem i64 %owner, %team
  %ours = icmp eq i64 %whose, %me
  %single = icmp eq i64 %times, 1
  %some = zext i1 %ours to i64
  %low = mul i64 %times, %me
  %first.n = udiv i64 %low, %team
  %me1 = add i64 %me, 1
  %high = mul i64 %times, %me1
  %last.n = udiv i64 %high, %team
  %first = select i1 %single, i64 0, i64 %first.n
  %last = select i1 %single, i64 %some, i64 %last.n
  %any = icmp slt i64 %first, %last
  br i1 %any, label %prepare, label %next
prepare:
{before}
  %f = inttoptr i64 %function to ptr
  br label %loop
loop:
  %turn = phi i64 [ %first, %prepare ], [ %turn.n, %loop ]
{inside}
  call void %f({given})
  %turn.n = add i64 %turn, 1
  %more = icmp slt i64 %turn.n, %last
  br i1 %more, label %loop, label %next
next:
  %following = add i64 %number, 1
  br label %head
done:
  ret void
}}
"""
