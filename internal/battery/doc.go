// Package battery plans the inputs that a model is tried with where nobody chose any: token ids and
// execution paths that cross every length at which it begins to compute something else, as far as a
// budget of time and bytes goes. What is left out is said. It reads config.json alone: no weights.
package battery
