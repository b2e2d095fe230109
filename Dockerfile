# The gateway alone: no embedded engines, so DATABASE_URL, NATS_URL, CLICKHOUSE_URL and
# TOLLGATE_MASTER_KEY must be set. docker-compose.yml sets them.

FROM node:22-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No scripts: they fetch a Node.js and a NATS server, and the image has the one and needs not the other.
RUN npm install --omit=optional --omit=dev --ignore-scripts && npm cache clean --force
COPY deploy ./deploy
RUN node deploy/bill-of-materials.ts --without-optional > sbom.cdx.json

FROM node:22-bookworm-slim AS pages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm install --omit=optional --ignore-scripts
COPY deploy ./deploy
COPY schemas ./schemas
COPY console ./console
RUN node deploy/reference-script.ts && node deploy/console-build.ts

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
COPY config ./config
COPY schemas ./schemas
COPY pipelines ./pipelines
COPY src ./src
COPY --from=pages /app/src/openapi/built ./src/openapi/built
COPY --from=pages /app/console/dist ./console/dist
USER node
# Holds the journal of calls that are not booked yet: it must outlive the container.
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TOLLGATE_PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts", "serve"]
