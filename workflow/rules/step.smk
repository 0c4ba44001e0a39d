# A rule that carries out a step is made from this one, with its own input, output and job.
rule step:
    log:
        "<logs>/<job>.log",
    benchmark:
        "<benchmarks>/<job>.tsv"
    pathvars:
        job="step",
    conda:
        f"{ENVS}/figures.yaml"
    threads: 1
    resources:
        mem_mb=memory,
        runtime=60,
    params:
        # A function of input, as Snakemake compares no such params: results can be carried to another place.
        environment=lambda wildcards, input: job_environment(SOURCE, RESULTS),
    shell:
        "{params.environment} python -m ictd.pipeline.runner"
        " {params.step} {params.settings} {params.files} > {log:q} 2>&1"
