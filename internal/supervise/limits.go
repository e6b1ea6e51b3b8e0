package supervise

import "time"

// defaultGrace is how long a program may take to end after SIGTERM.
const defaultGrace = 10 * time.Second

const (
	// drainTime is how long Run waits for the end of a pipe after the end of the program. Only a
	// descendant that left the group can still hold it.
	drainTime = 2 * time.Second

	// orphanGrace limits the time between SIGTERM and SIGKILL once no one waits for the result.
	orphanGrace = time.Second

	// killTime is how long to wait for the death of what was killed. It is exceeded only by processes
	// that the system cannot end, in a driver that hangs.
	killTime = 3 * time.Second

	// lockPoll is how often LockFile tries to get a lock that another process holds, and lockTell how
	// often it says again for whom it waits.
	lockPoll = 20 * time.Millisecond
	lockTell = 30 * time.Second
)

const (
	// tailLines and tailBytes limit what errors have of the end of a log.
	tailLines = 200
	tailBytes = 64 << 10

	// maxLine is the longest line of progress, in bytes. The rest of a longer one is dropped.
	maxLine = 64 << 10
)
