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

variable "key_arn" {
  description = "Key that encrypts images and logs."
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

variable "runs" {
  description = "Whether services are started: a secret that one is handed must have a value by then."
  type        = bool
  default     = true
}

variable "home" {
  description = "The platform's home, for the services that mount it."
  type        = object({ file_system_id = string, access_point_id = string })
}

variable "log_days" {
  description = "How long figures of containers are kept."
  type        = number
  default     = 30
}

variable "services" {
  # task_role_arn is our code's while it runs, start_role_arn fetches image and secrets; home is where it is mounted.
  description = "The services: image, command, size (1024 CPU units are one core), port (0 for none), permissions and environment."
  type = map(object({
    image          = string
    command        = list(string)
    cpu            = number
    memory_mb      = number
    port           = optional(number, 0)
    answers_at     = optional(string, "")
    stop_seconds   = optional(number, 30)
    home           = optional(string, "")
    log_group      = string
    group_id       = string
    task_role_arn  = optional(string)
    start_role_arn = string
    environment    = map(string)
    secrets        = map(string)
  }))
}
