package registryctl

// copyCommands has no commands: nobody has tried a copy of the registry on Windows.
type copyCommands struct{}

func isDamaged(error) bool { return false }
