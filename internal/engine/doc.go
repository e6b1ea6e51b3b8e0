// Package engine runs a model in an engine, in a child process, and gives the dump that it wrote.
//
// The engines torch (the reference) and max (the candidate) are Python programs that this package carries along. They are unpacked to a
// folder named by their hash and run by the user's interpreter, see [Interpreter]. Any other program can be an engine, see [Options].
//
// The protocol. The program gets the path of one JSON file, a [Job], as its last argument. It writes a dump folder for each case,
// OUT/<case>/<step>/… with OUT/<case>/run.json, as package dump reads it; run.json repeats the job's nonce. OUT appears when all is
// written, never in part. While it runs, the program may write JSON lines, each an [Event], to the file descriptor of which
// PARITY_PROGRESS_FD is the number. What it prints goes to a log file.
package engine
