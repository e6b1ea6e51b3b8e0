// Package supervise runs an engine as a child process that cannot outlive the process that started
// it.
//
// [Run] lets a watchdog start the program, in a process group of its own, with its own pipes and log
// file, so that nothing it leaves after keeps go test waiting. When Run returns, all of it is dead:
// the program has ended by itself or, once the context was done, by SIGTERM and then SIGKILL, and
// its descendants have been killed. If this process dies first (a test's alarm, a panic, os.Exit,
// SIGKILL), the watchdog ends them.
//
// The watchdog is this program, executed again: an init of this package recognises it, so every
// test binary that links the package can be one. It reads orders from a pipe whose other end only
// this process holds. When that end closes, this process is dead: the watchdog sends SIGTERM, waits
// at most a second, and sends SIGKILL.
//
// On Linux the watchdog adopts the orphans below it (PR_SET_CHILD_SUBREAPER). Whatever a descendant
// does, with sessions, process groups, or its parents' deaths, it remains below the watchdog, which
// kills its children until there are none. If the watchdog itself is killed, the program dies by
// that (PR_SET_PDEATHSIG); what it started is out of reach then. What another
// service starts on request (systemd-run, docker, at) is no descendant.
//
// On other Unix systems only the process group is ended: a daemon, which leaves it, is out of reach.
// [Daemons] says which it is. On Windows the program alone is killed.
package supervise
