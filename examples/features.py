"""Features of customers: a join and an aggregate, kept as views, and verified.

python examples/features.py http://127.0.0.1:2333
"""

import sys

import penstock

CUSTOMERS = [{"id": 1, "city": "Bern"}, {"id": 2, "city": "Oslo"}, {"id": 3, "city": "Bern"}]
ORDERS = [{"order": n, "customer": 1 + n % 3, "amount": 10.0 * (1 + n % 5)} for n in range(30)]


def main(url: str | None) -> None:
    lake = penstock.connect(url)
    lake.create_namespace("features")
    lake.create_table("features.customers", CUSTOMERS)
    orders = lake.create_table("features.orders", ORDERS)
    per_customer = lake.create_view(
        "features.per_customer",
        "SELECT customer, count(*) AS orders, max(amount) AS largest FROM orders GROUP BY customer",
    )
    per_city = lake.create_view(
        "features.per_city",
        "SELECT c.city, sum(p.orders) AS orders FROM customers c "
        "JOIN per_customer p ON p.customer = c.id GROUP BY c.city",
    )
    # The views that it reads are refreshed with it, from the same versions of the tables.
    per_city.refresh(cascade=True)
    print(per_city.to_list())
    print(per_city.lineage())
    orders.append([{"order": 30, "customer": 2, "amount": 500.0}])
    print(per_customer.explain())
    per_city.refresh(cascade=True)
    found = {row["city"]: row["orders"] for row in per_city.to_list()}
    print(found)
    assert found == {"Bern": 20, "Oslo": 11}
    largest = {row["customer"]: row["largest"] for row in per_customer.to_list()}
    assert largest == {1: 50.0, 2: 500.0, 3: 50.0}
    certificate = per_customer.verify()
    print(certificate)
    assert certificate


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
