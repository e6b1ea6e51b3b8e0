package main

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// stamp is version and commit of a build of the Makefile, which builds without -buildvcs: that fails
// where git refuses the checkout, and knows nothing in a worktree.
var stamp string

// version says which build of parity this is: version, commit, Go and platform.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return cmp.Or(stamp, buildText(info)) + ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// buildText returns version and commit of a build. go install …@latest knows the module's version,
// a build from a checkout its commit; with -buildvcs=false a build knows neither.
func buildText(info *debug.BuildInfo) string {
	if info == nil {
		return "unknown version (built without module information)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			return v
		}
		return "development version, commit not stamped (-buildvcs=false, a git worktree, or no checkout)"
	}
	// Go makes a pseudo-version of a commit without a tag: it says no more than the commit itself.
	text := "development version"
	if v, _, _ := strings.Cut(info.Main.Version, "+"); v != "" && v != "(devel)" &&
		!strings.Contains(v, commit[:min(12, len(commit))]) {
		text = v
	}
	text += ", commit " + commit
	if settings["vcs.modified"] == "true" {
		text += " (modified)"
	}
	return text
}
