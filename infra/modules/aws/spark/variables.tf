variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets that jobs run in."
  type        = list(string)
}

variable "group_id" {
  description = "Security group that drivers and executors wear."
  type        = string
}

variable "release" {
  description = "EMR's release; it decides the version of Spark."
  type        = string
  default     = "emr-7.9.0"
}

variable "image" {
  description = "Image with Spark and our code, built on EMR's own of that release; empty takes EMR's."
  type        = string
  default     = ""
}

variable "workers" {
  description = "Executors that are kept warm."
  type        = number
  default     = 2
}

variable "worker_cpu" {
  description = "Cores of the driver and of each executor."
  type        = number
  default     = 2
}

variable "worker_memory_gb" {
  description = "Memory of the driver and of each executor, in GB."
  type        = number
  default     = 8
}

variable "most_workers" {
  description = "Executors at most, all jobs together; the ceiling of what it can cost."
  type        = number
  default     = 8
}

variable "idle_minutes" {
  description = "After how long without a job the application stops and costs nothing."
  type        = number
  default     = 15
}
