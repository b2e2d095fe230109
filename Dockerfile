# The gateway alone: no embedded engines, so DATABASE_URL, NATS_URL, CLICKHOUSE_URL and
# TOLLGATE_MASTER_KEY must be set. docker-compose.yml sets them.

FROM node:22-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY console/package.json ./console/
COPY simulator/package.json ./simulator/
# No scripts: they fetch a Node.js and a NATS server, and the image has the one and needs not the other.
RUN npm install --omit=optional --omit=dev --ignore-scripts && npm cache clean --force
COPY scripts ./scripts
RUN node scripts/bill-of-materials.ts --without-optional > sbom.cdx.json

FROM packages AS pages
COPY schemas ./schemas
COPY console ./console
RUN node scripts/reference-script.ts && node scripts/console-build.ts

FROM node:22-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production \
    TOLLGATE_HOST=0.0.0.0 \
    TOLLGATE_PORT=8080 \
    TOLLGATE_DATA_DIR=/data
RUN mkdir -m 700 /data && chown node:node /data
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
# What is in the image: every package with its version, licence and checksum, as CycloneDX.
COPY --from=packages /app/sbom.cdx.json ./
COPY schemas ./schemas
COPY pipelines ./pipelines
COPY src ./src
COPY simulator ./simulator
COPY docs ./docs
COPY --from=pages /app/src/openapi/built ./src/openapi/built
COPY --from=pages /app/console/dist ./console/dist
USER node
# Holds the journal of calls that are not booked yet: it must outlive the container.
VOLUME /data
EXPOSE 8080
# Asks where the service says that it listens, by TLS too, whose certificate names another host than this one. A service
# that listens nowhere is healthy while it runs.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "--no-warnings", "-e", "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; const { admin_url, base_url } = JSON.parse(fs.readFileSync(`${process.env.TOLLGATE_DATA_DIR}/run.json`)); const url = admin_url ?? base_url; if (url) fetch(`${url}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts", "serve"]
