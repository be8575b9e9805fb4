variable "docker" {
  description = "The program that speaks to the engine: docker, or podman, with compose."
  type        = string
  default     = "docker"
}

variable "workers" {
  description = "How many Spark workers."
  type        = number
  default     = 2
}
