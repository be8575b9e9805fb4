variable "directory" {
  description = "Folder that holds logs, records and what jobs leave behind; it is removed with Spark."
  type        = string
}

variable "jars" {
  description = "Folder of the jobs' jars; missing jars are downloaded."
  type        = string
}

variable "python" {
  description = "The Python that penstock is installed in."
  type        = string
}

variable "first_port" {
  description = "The master's port; its pages are on the next, worker N on this plus ten plus N."
  type        = number
}

variable "secured" {
  description = "Whether master, workers and jobs must know a secret, and encrypt what they tell each other."
  type        = bool
}

variable "workers" {
  description = "How many workers."
  type        = number

  validation {
    condition     = var.workers >= 1 && var.workers <= 9 && floor(var.workers) == var.workers
    error_message = "From one to nine workers can run here."
  }
}

variable "cores" {
  description = "Cores that jobs may use on each worker."
  type        = number
}

variable "memory_mb" {
  description = "Memory that jobs may use on each worker, in MB."
  type        = number
}
