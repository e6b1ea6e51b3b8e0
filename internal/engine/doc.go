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
// An oracle file builds what the engines cannot build by themselves. spec has case, prompts,
// messages, token_ids, images, steps, model, revision, device, dtype, max_layers and
// hf_config_overrides:
//
//	def reference(spec):   # torch: module, or (module, inputs): a tuple, a dict by name, or one tensor
//	def candidate(spec):   # MAX: (module, weights, input_types, inputs): weights by name, numpy inputs
//
// Without inputs the reference gets the case's token_ids. If the task is not module,
// reference(spec) returns the model alone, and the inputs are the case's. In the models' code,
// parity_tap(value, name) of the Python package goparity records a value by hand.
//
// In an injected run of MAX every layer gets the golden inputs, all in one graph: they are bound as
// weights, so that the graph is compiled once for all goldens of the same sizes. The value computed
// for an input is recorded before it is replaced, as port computed_<n>: it is the output of the
// code between two layers. run.json says what was replaced ("injected"), what was not and why
// ("not_injected"), and which arguments of a layer no hook can record ("uncaptured").
//
// MAX reads a weight that is not in the checkpoint as zeros, and Transformers initializes it at
// random. Both runners therefore compare the names in the checkpoint with those that the model asks
// for. They name and refuse a weight that is missing or left over, unless allow_missing has it;
// run.json lists the names ("load_audit").
package engine
