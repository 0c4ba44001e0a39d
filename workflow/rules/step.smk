# The base rule of all other rules: log, benchmark, resources and shell command.
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
        # A function of input, because Snakemake does not compare such params: moving the project reruns no job.
        variables=lambda wildcards, input: job_variables(SOURCE, RESULTS, config["environments"]),
    shell:
        "{params.variables} python -m ictd.pipeline.runner"
        " {params.step} {params.settings} {params.files} > {log:q} 2>&1"
