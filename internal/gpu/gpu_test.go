package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/gpu"
	_ "github.com/goparity/goparity/internal/updateflag"
)

// tools is a machine on which programs print what the map says; others are not installed.
func tools(out map[string]string, fail error) gpu.Driver {
	return gpu.Tools(func(_ context.Context, name string, _ ...string) ([]byte, error) {
		text, ok := out[name]
		if !ok {
			return nil, &exec.Error{Name: name, Err: exec.ErrNotFound}
		}
		return []byte(text), fail
	})
}

func TestPick(t *testing.T) {
	const rocm = `{"card0": {"Card Series": "MI300X", "VRAM Total Memory (B)": "1073741824", "VRAM Total Used Memory (B)": "1048576"},
		"system": {"Driver version": "6.8"}}`
	for _, tt := range []struct {
		name, want string
		driver     gpu.Driver
		err        error
		text       string
		reason     string
	}{
		{"none", "", tools(nil, nil), gpu.ErrNoDriver, "-parity.run=cpu", "a machine without any driver"},
		{"one", "NVIDIA NVIDIA H200, driver 570.1, 143000 of 143771 MiB free", tools(map[string]string{"nvidia-smi": "NVIDIA H200, 570.1, 143771, 143000\n"}, nil), nil, "", "one free GPU"},
		{"two", "NVIDIA B, driver 1, 90 of 100 MiB free", tools(map[string]string{"nvidia-smi": "A, 1, 100, 10\nB, 1, 100, 90\n"}, nil), nil, "", "the one with more free memory"},
		{"busy", "", tools(map[string]string{"nvidia-smi": "A, 1, 100, 10\n"}, nil), gpu.ErrBusy, "10 of 100 MiB free", "another process holds it"},
		{"empty", "", tools(map[string]string{"nvidia-smi": "\n"}, nil), gpu.ErrNoDevice, "passed through", "a driver without a device"},
		{"broken", "", tools(map[string]string{"nvidia-smi": "x"}, errors.New("exit status 9: NVIDIA-SMI has failed")), nil, "NVIDIA-SMI has failed", "the driver's own words"},
		{"words", "", tools(map[string]string{"nvidia-smi": "hello\n"}, nil), nil, "hello", "unknown output is quoted"},
		{"amd", "AMD MI300X, driver 6.8, 1023 of 1024 MiB free", tools(map[string]string{"rocm-smi": rocm}, nil), nil, "", "AMD where NVIDIA is not"},
		{"amd words", "", tools(map[string]string{"rocm-smi": "nonsense"}, nil), nil, "nonsense", "unknown output is quoted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := gpu.Pick(context.Background(), tt.driver)
			if tt.text != "" {
				require.ErrorContains(t, err, tt.text, tt.reason)
				if tt.err != nil {
					assert.ErrorIs(t, err, tt.err, tt.reason)
				}
				return
			}
			require.NoError(t, err, tt.reason)
			assert.Equal(t, tt.want, fmt.Sprint(d), tt.reason)
		})
	}
}

func TestSupports(t *testing.T) {
	assert.NoError(t, gpu.Supports("cpu", ""))
	assert.NoError(t, gpu.Supports("cpu", "float32"))
	assert.NoError(t, gpu.Supports("gpu", "bfloat16"))
	assert.ErrorContains(t, gpu.Supports("cpu", "bfloat16"), "float32, q4_k")
	assert.ErrorContains(t, gpu.Supports("gpu", "q4_k"), "bfloat16")
}
