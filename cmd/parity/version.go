package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// stamp is version and commit of a build of the Makefile, which builds without -buildvcs: that fails
// where git refuses the checkout, and knows nothing in a worktree.
var stamp string

// version says which build of parity this is: version or commit, Go and platform.
func version() string {
	var built string
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.Main.Version // a tag, or a pseudo-version with the commit; "+dirty" where files were changed
	}
	if built == "" || built == "(devel)" {
		built = "development version, commit not stamped (-buildvcs=false, a git worktree, or no checkout)"
	}
	return cmp.Or(stamp, built) + ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
