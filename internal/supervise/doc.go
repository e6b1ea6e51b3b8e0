// Package supervise runs an engine as a child process that cannot outlive the process that started
// it.
//
// [Run] starts the program in a process group of its own, with its own pipes and log file, so that
// nothing it leaves behind keeps go test waiting. The group ends with Run: by itself, by SIGTERM
// and then SIGKILL when the context is done, and its descendants in any case. If this process dies
// first (a test's alarm, a panic, os.Exit, SIGKILL), a watchdog ends the group.
//
// The watchdog is this very program, executed once more: it is recognised in an init of this
// package, so every test binary that links the package can be one. It leads the group, which keeps
// the group's number from being given to anybody else, and reads from a pipe whose other end only
// this process holds. When that end closes, this process is dead: the watchdog sends SIGTERM to the
// group, waits a second at most, and sends SIGKILL to the group, itself included.
//
// On Windows a job object that is killed when its last handle closes does the same.
//
// Under Bazel (BAZEL_TEST) tests may not create groups, because Bazel kills the test's own at the
// end. Then only the child is ended here, its descendants by Bazel. A descendant that leaves the
// group on purpose (setsid) is out of reach everywhere.
package supervise
