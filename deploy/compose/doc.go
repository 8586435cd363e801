// Package compose tests docker-compose.yml: test.sh makes the images, starts a
// Docker engine where there is none, and tells by COMPOSE what Docker Compose is
// called there.
package compose
