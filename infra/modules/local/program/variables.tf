variable "directory" {
  description = "Folder of the program's log, of its record, and of what it holds."
  type        = string
}

variable "name" {
  description = "The program's name, which names its record and its log."
  type        = string
}

variable "holds" {
  description = "A folder of the program's own, which goes with it; none by default."
  type        = string
  default     = ""
}

variable "python" {
  description = "The Python that penstock is installed in."
  type        = string
}

variable "action" {
  description = "The action of penstock.infra.local that has it running as ordered."
  type        = string
}

variable "order" {
  description = "Request of the action, in addition to the name of this start."
  type        = any
}

variable "restarts" {
  description = "What restarts the program when it changes."
  type        = any
}
