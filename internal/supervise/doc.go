// Package supervise runs an engine as a child process that cannot outlive the process that started
// it.
//
// [Run] starts the program in a process group of its own, with its own pipes and log file, so that
// nothing it leaves behind keeps go test waiting. When Run returns, the whole group is dead: the
// program has ended by itself or, once the context was done, by SIGTERM and then SIGKILL, and its
// descendants have been killed. If this process dies first (a test's alarm, a panic, os.Exit,
// SIGKILL), a watchdog ends the group.
//
// The watchdog is this program, executed again: an init of this package recognises it, so every
// test binary that links the package can be one. It leads the group, so that the system cannot
// reuse the group's number, and reads from a pipe whose other end only this process holds. When
// that end closes, this process is dead: the watchdog sends SIGTERM to the group, waits at most a
// second, and sends SIGKILL to the group, itself included.
//
// On Windows a job object, whose processes are killed when its last handle closes, does the same.
//
// Under Bazel (BAZEL_TEST) tests may not create groups, because Bazel kills the test's own group at
// the end. There this package ends only the child, and Bazel its descendants. A descendant that
// leaves the group on purpose (setsid) is always out of reach.
package supervise
