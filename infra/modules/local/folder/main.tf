resource "terraform_data" "this" {
  input = { order = jsonencode({ directory = var.directory }), python = var.python }

  provisioner "local-exec" {
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "make-folder"
    environment = { PENSTOCK_ORDER = self.input.order }
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-m", "penstock.infra.local"]
    command     = "remove-folder"
    environment = { PENSTOCK_ORDER = self.input.order }
  }
}
