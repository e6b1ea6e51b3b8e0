// Package wheel has what makes the Python package: the recorder and the runners of package engine,
// as they are, with the command parity of one platform. make dist builds it.
package wheel
