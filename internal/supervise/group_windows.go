package supervise

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object. The system kills the processes in it when its last handle is closed, hence
// also when this process dies.
type group struct {
	job windows.Handle
	cmd *exec.Cmd
	end func()
}

func startGroup(_ context.Context, cmd *exec.Cmd, _ string) (*group, error) {
	g, err := newGroup()
	if err != nil {
		return nil, err
	}
	if err := g.start(cmd); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func newGroup() (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(job)
		return nil, os.NewSyscallError("SetInformationJobObject", err)
	}
	return &group{job: job, end: sync.OnceFunc(func() {
		windows.TerminateJobObject(job, 1)
		windows.CloseHandle(job)
	})}, nil
}

// start starts the program suspended, so that it cannot have descendants before it is in the job.
func (g *group) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP
	if err := cmd.Start(); err != nil {
		return err
	}
	g.cmd = cmd
	err := g.adopt(cmd.Process.Pid)
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
	return err
}

func (g *group) adopt(pid int) error {
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	defer windows.CloseHandle(p)
	if err := windows.AssignProcessToJobObject(g.job, p); err != nil {
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	return resume(uint32(pid))
}

// resume lets a suspended process run. It has one thread.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(thread)
		windows.CloseHandle(thread)
		return os.NewSyscallError("ResumeThread", err)
	}
	return os.NewSyscallError("Thread32Next", err)
}

// wait returns how the program ended. On Windows a crash is an exit code such as 0xC0000005, not a
// signal.
func (g *group) wait() ending {
	err := g.cmd.Wait()
	if g.cmd.ProcessState == nil {
		return ending{err: err}
	}
	return ending{code: g.cmd.ProcessState.ExitCode()}
}

// terminate sends Ctrl-Break to the program's group, which is the closest thing to SIGTERM. Without
// a console the program is killed.
func (g *group) terminate() {
	if windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.cmd.Process.Pid)) != nil {
		windows.TerminateJobObject(g.job, 1)
	}
}

// close kills what is left of the job.
func (g *group) close() { g.end() }
