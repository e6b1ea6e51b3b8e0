// Package checkpoint reads the folder of a model: its weights, by Hugging Face's keys, and its
// config.json.
package checkpoint
