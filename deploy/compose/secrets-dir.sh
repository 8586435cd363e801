# shellcheck shell=bash
# The scripts beside this file source it, in the project's directory.

# secrets_dir prints the directory of the secrets. Compose is asked, so that a
# SECRETS of the environment or of .env counts here as it does there.
secrets_dir() {
	local found
	found=$($COMPOSE config secrets |
		awk '/^ *source: / { sub(/^ *source: /, ""); from = $0 } /^ *target: \/secrets$/ { print from; exit }')
	found=${found#[\"\']}
	found=${found%[\"\']}
	if [ -z "$found" ]; then
		echo "$COMPOSE config does not tell where the secrets are" >&2
		return 1
	fi
	printf '%s\n' "$found"
}
