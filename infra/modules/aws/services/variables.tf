variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "vpc_id" {
  description = "The network that services run in."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets that services run in."
  type        = list(string)
}

variable "client_group_id" {
  description = "Security group that services wear."
  type        = string
}

variable "key_arn" {
  description = "Key that encrypts images."
  type        = string
}

variable "task_role_arn" {
  description = "Role of our code while it runs."
  type        = string
}

variable "start_role_arn" {
  description = "Role that fetches images and hands over secrets when a service starts."
  type        = string
}

variable "log_group" {
  description = "Log group that takes the services' logs."
  type        = string
}

variable "image_tag" {
  description = "Which build runs; tags never move."
  type        = string
}

variable "repositories" {
  description = "Images that are kept, one repository each."
  type        = set(string)
  default     = ["dagster", "host"]
}

variable "services" {
  description = "What runs: its image, its command, its size (1024 CPU units are a core), its port (0 for none)."
  type = map(object({
    image     = string
    command   = list(string)
    cpu       = number
    memory_mb = number
    port      = number
  }))
}

variable "environment" {
  description = "Settings that are no secrets, for all services."
  type        = map(string)
  default     = {}
}

variable "secrets" {
  description = "Settings that are secrets: their name to the ARN, and the key inside, of where the value is."
  type        = map(string)
  default     = {}
}
