// Package compose tests docker-compose.yml and the operator's scripts in deploy/compose. The script test.sh builds
// the images, starts a Docker engine if none runs, and sets COMPOSE to the command of Docker Compose. Without
// COMPOSE, the tests that need containers are skipped.
package compose
