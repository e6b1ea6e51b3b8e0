package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// visibleKeys are the variables by which a process sees only some devices, by vendor. Of the first
// group the first that is set counts, then that of the second, whose numbers count what the first
// left: ROCm's runtime hides devices from HIP, which hides some of them again.
var visibleKeys = map[string][][]string{
	"NVIDIA": {{"CUDA_VISIBLE_DEVICES"}},
	"AMD":    {{"ROCR_VISIBLE_DEVICES"}, {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}},
}

// EnvironOf returns env with the variable by which an engine sees these devices of one vendor alone,
// in place of those that said so before. Devices go by UUID: CUDA's numbers need not be those of
// nvidia-smi.
func EnvironOf(devices []Device, env []string) []string {
	keys := visibleKeys[devices[0].Vendor]
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(keys, func(group []string) bool { return slices.Contains(group, key) })
	})
	ids := make([]string, len(devices))
	for i, d := range devices {
		ids[i] = d.ID()
	}
	return append(env, keys[0][0]+"="+strings.Join(ids, ","))
}

// visible returns the devices that env lets a process see, in its order. named is false if env says
// nothing about that.
func visible(all []Device, env []string) (seen []Device, named bool, err error) {
	seen = all
	for _, group := range visibleKeys[all[0].Vendor] {
		for _, key := range group {
			value, set := lookup(env, key)
			if !set {
				continue
			}
			named = true
			if seen, err = choose(seen, value); err != nil {
				return nil, true, fmt.Errorf("no GPU: %s is %q: %w", key, value, err)
			}
			break
		}
	}
	return seen, named, nil
}

// choose returns the devices of a list of numbers and UUIDs; the start of a UUID will do. A MIG
// instance is a device that nvidia-smi does not list in a table.
func choose(all []Device, list string) (chosen []Device, err error) {
	for id := range strings.SplitSeq(list, ",") {
		id = strings.TrimSpace(id)
		if strings.HasPrefix(id, "MIG-") {
			chosen = append(chosen, Device{Vendor: all[0].Vendor, Name: "MIG instance", Driver: all[0].Driver, UUID: id})
			continue
		}
		i, err := strconv.Atoi(id)
		if err != nil {
			i = only(all, id)
		}
		if i < 0 || i >= len(all) {
			return nil, fmt.Errorf("%q is none of the %d devices that the driver lists: "+
				"name one by its number or its whole UUID, or leave the variable out", id, len(all))
		}
		if !slices.Contains(chosen, all[i]) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}

// only returns the index of the one device whose UUID starts with id, else -1.
func only(all []Device, id string) int {
	starts := func(d Device) bool { return id != "" && strings.HasPrefix(d.UUID, id) }
	i := slices.IndexFunc(all, starts)
	if i >= 0 && slices.ContainsFunc(all[i+1:], starts) {
		return -1
	}
	return i
}
