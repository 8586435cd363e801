// Package compose tests docker-compose.yml and the operator's scripts in
// deploy/compose. test.sh builds the images, starts a Docker engine if there is none,
// and sets COMPOSE to the command of Docker Compose. Without COMPOSE, the tests that
// need containers are skipped.
package compose
