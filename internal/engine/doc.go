// Package engine runs a model in an engine, in a child process, and returns the dump that it wrote.
//
// The engines torch (the reference), max and mlx (candidates) are Python files that are embedded in this
// package, with a table of what each can do; so is one of the user's own, see [Job]. They are unpacked to
// a folder named by their hash and run by the user's interpreter, see [Interpreter]. Any other program can
// be an engine, see [Options]. [RunOnDevice]
// runs a job alone on its device.
//
// The protocol: the program gets the path of one JSON file, a [Job], as its last argument. It
// writes a dump folder for each case, OUT/<case>/<step>/… with OUT/<case>/run.json, as package dump
// reads it; run.json repeats the job's nonce. OUT appears only when everything is written. While it
// runs, the program may write JSON lines, each an [Event], to the file descriptor whose number is
// in PARITY_PROGRESS_FD. What it prints goes to a log file.
//
// An oracle file builds what the engines cannot build by themselves, see docs/models.md. In an injected
// run of MAX every layer gets the golden inputs, bound as weights, so that one graph is compiled for all
// goldens of the same sizes.
//
// MAX reads a weight that is not in the checkpoint as zeros, and Transformers initializes it at
// random. Both runners therefore compare the names in the checkpoint with those that the model asks
// for. They name and refuse a weight that is missing or left over, unless allow_missing has it;
// run.json lists the names ("load_audit").
package engine
