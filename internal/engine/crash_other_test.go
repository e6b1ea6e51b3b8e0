//go:build !unix

package engine_test

import "os"

func crash() { os.Exit(139) }
