// Package battery plans the inputs that a model is tried with where nobody chose any: token ids and
// execution paths that cross every length at which it begins to compute something else, as far as a
// budget of time and bytes goes, conversations where there is a chat template, and pictures where the
// model takes images. What is left out is said. It reads settings alone: no weights.
package battery
