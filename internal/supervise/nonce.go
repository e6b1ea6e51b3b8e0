package supervise

import (
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// nonceKey is the variable by which a process below a program can be found: the nonce of the
// process that ran it, a dot, and the number of the run.
const nonceKey = "PARITY_SUPERVISED"

// killTime is how long to wait for the death of what was killed. It is exceeded only by processes
// that the system cannot end, in a driver that hangs.
const killTime = 3 * time.Second

var (
	processNonce = sync.OnceValue(rand.Text)
	runs         atomic.Int64
)

func newNonce() string { return processNonce() + "." + strconv.FormatInt(runs.Add(1), 10) }
