variable "home" {
  description = "Folder that holds all that running makes; .penstock of the checkout when it is not given."
  type        = string
  default     = null
}

variable "jars" {
  description = "Folder of jars; jars in the home when it is not given."
  type        = string
  default     = null
}

variable "python" {
  description = "The Python that penstock is installed in; one on the PATH by default, as in an activated environment."
  type        = string
  default     = "python3"
}

variable "first_port" {
  description = "The first of sixty ports in a row, all on 127.0.0.1."
  type        = number
  default     = 29000

  validation {
    condition     = var.first_port >= 1024 && var.first_port <= 65000
    error_message = "Choose a first port from 1024 to 65000."
  }
}

variable "secured" {
  description = "Whether Kafka wants TLS, passwords and permissions, and Spark a secret; decided once."
  type        = bool
  default     = false
}

variable "brokers" {
  description = "How many Kafka brokers."
  type        = number
  default     = 3
}

variable "broker_heap_mb" {
  description = "Heap of a Kafka broker, in MB."
  type        = number
  default     = 384
}

variable "workers" {
  description = "How many Spark workers."
  type        = number
  default     = 2
}

variable "worker_cores" {
  description = "Cores that jobs may use on each Spark worker: one for streams, and one for what runs beside them."
  type        = number
  default     = 2
}

variable "worker_memory_mb" {
  description = "Memory that jobs may use on each Spark worker, in MB."
  type        = number
  default     = 1024
}
