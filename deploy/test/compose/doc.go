// Package compose tests docker-compose.yml and the scripts for operators beside
// it. test.sh makes the images, starts a Docker engine where there is none, and
// tells by COMPOSE how Docker Compose is called there; tests that need no
// container run without it.
package compose
