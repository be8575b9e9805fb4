"""The outputs of an environment that starts nothing, for tests of what is done with environments."""

OUTPUTS = """
output "kafka" {
  value = {
    brokers  = ["127.0.0.1:1"]
    security = { protocol = "PLAINTEXT", mechanism = "", ca = "", secrets = {} }
  }
}
output "spark" {
  value = { kind = "standalone", master = "spark://127.0.0.1:3", application = "", job_role = "", secret = "" }
}
output "warehouse" { value = { root = "/warehouse" } }
output "control_store" { value = { url = "sqlite:////control.db", secret = "" } }
"""
