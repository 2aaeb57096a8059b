set -e
cd /tmp/w/open-link/exp
/tmp/w/nv.sh cuda_exp.cu cuda_exp.o
sed 's/tuning\.blocks_ahead/(getenv("AHEAD") ? atoi(getenv("AHEAD")) : 500)/; s/schedule\.together = /schedule.together = !getenv("APART") \&\& /; 1i #include <cstdlib>' /work/wt/open/kernels/diff/cuda_schedule.cpp > sched.cpp
g++ -std=c++17 -O2 -DCUDAVISION_CUDA=1 -DCUDAVISION_CPU=1 -fvisibility=default -ffp-contract=off -I/work/wt/open -isystem/usr/local/cuda-13.0/include -fPIC -c sched.cpp -o sched.o
bash ../mk.sh /tmp/w/open-link/v1/libcudavision-kernels-shared.so cuda_exp.o sched.o /tmp/w/open-o/cuda_open.o /tmp/w/open-o/cuda_compare.o /tmp/w/open-x/?/open.o
ls -la ../v1; xz -c ../v1/*.so | wc -c
