# A worker of a crawl: docker-compose.yml and kubernetes.yaml start it.
FROM python:3.11.13-slim-bookworm AS wheels
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[metrics]'

FROM python:3.11.13-slim-bookworm
# Who writes to /data is no root, there or where it is mounted.
RUN useradd --uid 1000 --no-create-home crawler && install --directory --owner=crawler --group=crawler /data
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links=/wheels 'shingleback[metrics]'
WORKDIR /shingleback
COPY scrapy.cfg .
COPY crawler crawler
USER 1000:1000
VOLUME /data
# A crawler whose loop stands still has no pulse.
ENV CRAWLER_PULSE=/tmp/pulse
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD find "$CRAWLER_PULSE" -mmin -1 | grep -q .
# The name of its host is another in each container, so each writes files of its own.  docker-compose.yml makes /keys/env.
ENTRYPOINT ["sh", "-c", "[ ! -r /keys/env ] || . /keys/env; exec scrapy crawl site -o \"/data/pages-$HOSTNAME-%(time)s.jsonl\" -s \"DEDUP_LOG=/data/duplicates-$HOSTNAME-%(time)s.jsonl\" -s \"DEDUP_PARKED=/data/parked-$HOSTNAME-%(time)s.jsonl\" \"$@\"", "crawler"]
