# shellcheck shell=bash
# The other scripts of this directory source this file. They run it in the root of
# the project. $COMPOSE is the command of Docker Compose.
COMPOSE=${COMPOSE:-docker compose}

# The oldest Docker Compose that the scripts and docker-compose.yml are tested with.
OLDEST_COMPOSE=2.26.1

# check_compose ends the script if Compose is missing or older than OLDEST_COMPOSE.
check_compose() {
	local found
	found=$($COMPOSE version --short) || {
		echo "'$COMPOSE version' failed; nothing was changed" >&2
		exit 1
	}
	found=${found#v}
	if [ "$(printf '%s\n' "$OLDEST_COMPOSE" "${found%%[-+]*}" | sort -V | head -1)" != "$OLDEST_COMPOSE" ]; then
		echo "Docker Compose $found is too old: use $OLDEST_COMPOSE or newer; nothing was changed" >&2
		exit 1
	fi
}

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

check_compose
