# shellcheck shell=bash
# The other scripts of this directory source this file. They run it in the root of
# the project.

# secrets_dir prints the directory of the secrets. It asks Compose, so SECRETS from the
# environment or from .env has the same effect in both places.
secrets_dir() {
	local found
	found=$($COMPOSE config secrets |
		awk '/^ *source: / { sub(/^ *source: /, ""); from = $0 } /^ *target: \/secrets$/ { print from; exit }')
	found=${found#[\"\']}
	found=${found%[\"\']}
	if [ -z "$found" ]; then
		echo "the output of '$COMPOSE config' does not name the directory of the secrets" >&2
		return 1
	fi
	printf '%s\n' "$found"
}
