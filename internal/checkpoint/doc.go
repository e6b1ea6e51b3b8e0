// Package checkpoint is what the folder of a model says of it: its weights, by the keys of Hugging
// Face, and its config.json.
package checkpoint
