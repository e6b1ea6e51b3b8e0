// Package dequantised gives a quantised checkpoint, a .gguf file or a folder of Hugging Face, as the
// weights that it stands for, by the names of Hugging Face, and writes them as a folder that
// transformers loads: the reference of a quantised candidate.
package dequantised
