# SPDX-License-Identifier: Apache-2.0
# Certificates and authorities of a test's own, in $PLACE.

# make_ca NAME
make_ca() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$1" -keyout "$PLACE/$1.key" -out "$PLACE/$1.pem" 2>/dev/null
}

# certify NAME OF SERIAL: by the authority "ours".
certify() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
        -keyout "$PLACE/$1.key" -out "$PLACE/$1.csr" 2>/dev/null
    openssl x509 -req -in "$PLACE/$1.csr" -CA "$PLACE/ours.pem" -CAkey "$PLACE/ours.key" -days 2 \
        -set_serial "$3" -extfile <(echo "subjectAltName=$2") -out "$PLACE/$1.pem" 2>/dev/null
}
